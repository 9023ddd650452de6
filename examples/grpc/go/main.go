// Makes an account, streams a text, makes an image, and writes it to fox.png.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	authv1 "example.com/genmesh/gen/genmesh/auth/v1"
	billingv1 "example.com/genmesh/gen/genmesh/billing/v1"
	mediav1 "example.com/genmesh/gen/genmesh/media/v1"
	textv1 "example.com/genmesh/gen/genmesh/text/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// In a mesh each service has an address of its own. One process has all of them here.
var (
	address = env("ADDRESS", "127.0.0.1:9090")
	baseURL = env("BASE_URL", "http://127.0.0.1:8080/v1")
	admin   = "Bearer " + os.Getenv("GENMESH_ADMIN_TOKEN")
	mesh    = "Bearer " + os.Getenv("GENMESH_MESH_TOKEN")
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(reasonOf(err))
	}
}

func run() error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	key, secret, err := makeAccount(metadata.AppendToOutgoingContext(ctx, "authorization", admin), conn)
	if err != nil {
		return err
	}
	// Calls on behalf of a key: the mesh token, and the key beside it.
	principal := key.AccountId + "/" + key.KeyId
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", mesh, "genmesh-principal", principal)
	if err := streamText(ctx, conn); err != nil {
		return err
	}
	job, err := makeImage(ctx, conn)
	if err != nil {
		return err
	}
	image, err := download(ctx, job, secret)
	if err != nil {
		return err
	}
	fmt.Printf("fox.png: %d bytes, %d credits\n", len(image), job.GetCreditsCharged())
	return os.WriteFile("fox.png", image, 0o644)
}

// makeAccount answers the first key of a new account that has $1 and 100 credits, and the key's secret.
func makeAccount(ctx context.Context, conn *grpc.ClientConn) (*authv1.ApiKey, string, error) {
	// A repeat with the same operation id changes nothing. So every call may be retried.
	id := rand.Text()
	made, err := authv1.NewAuthServiceClient(conn).CreateAccount(ctx, &authv1.CreateAccountRequest{Name: "Example", OperationId: id})
	if err != nil {
		return nil, "", err
	}
	for unit, amount := range map[billingv1.Unit]int64{billingv1.Unit_UNIT_USD_MICROS: 1_000_000, billingv1.Unit_UNIT_CREDITS: 100} {
		_, err := billingv1.NewBillingServiceClient(conn).Grant(ctx, &billingv1.GrantRequest{
			AccountId: made.Account.AccountId, Unit: unit, Amount: amount, OperationId: id + "-" + unit.String(),
		})
		if err != nil {
			return nil, "", err
		}
	}
	return made.Key, made.Secret, nil
}

// streamText prints an answer while it comes.
func streamText(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := textv1.NewTextServiceClient(conn).StreamGenerate(ctx, &textv1.StreamGenerateRequest{
		Operation: textv1.Operation_OPERATION_RESPONSES,
		Responses: &textv1.ResponsesBody{
			Model: proto.String("chat-1"), Input: proto.String("Why is the sky blue?"), Stream: proto.Bool(true),
		},
	})
	if err != nil {
		return err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			fmt.Println()
			return nil
		}
		if err != nil {
			return err
		}
		// Each message has whole events, as the public API sends them.
		for line := range strings.Lines(string(part.GetEvents())) {
			var event struct{ Type, Delta string }
			data, isData := strings.CutPrefix(line, "data: {")
			if isData && json.Unmarshal([]byte("{"+data), &event) == nil && event.Type == "response.output_text.delta" {
				fmt.Print(event.Delta)
			}
		}
	}
}

// makeImage answers an image job once it has ended.
func makeImage(ctx context.Context, conn *grpc.ClientConn) (*mediav1.Job, error) {
	client := mediav1.NewMediaServiceClient(conn)
	submitted, err := client.SubmitJob(ctx, &mediav1.SubmitJobRequest{
		Kind:           mediav1.JobKind_JOB_KIND_IMAGE,
		Job:            &mediav1.JobBody{Model: proto.String("image-1"), Prompt: proto.String("a fox in the snow")},
		IdempotencyKey: proto.String(rand.Text()),
	})
	if err != nil {
		return nil, err
	}
	job := submitted.Job
	watch, err := client.WatchJob(ctx, &mediav1.WatchJobRequest{JobId: job.JobId})
	if err != nil {
		return nil, err
	}
	for {
		change, err := watch.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		// A message without a job is a heartbeat.
		if change.Job != nil {
			job = change.Job
			fmt.Println(job.Status, job.Progress)
		}
	}
	if job.Status != mediav1.JobStatus_JOB_STATUS_COMPLETED {
		return nil, fmt.Errorf("the job failed: %s", job.GetError().GetMessage())
	}
	return job, nil
}

// download reads the bytes of a job's first file. The public API has them, for the key that made the job.
func download(ctx context.Context, job *mediav1.Job, secret string) ([]byte, error) {
	url := fmt.Sprintf("%s/images/generations/%s/files/%s", baseURL, job.JobId, job.Outputs[0].FileId)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the download answered %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// reasonOf is the name that a program decides by, with the values that belong to it.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, isInfo := detail.(*errdetails.ErrorInfo); isInfo {
			return fmt.Sprint(info.Reason, " ", info.Metadata)
		}
	}
	return err.Error()
}

func env(name, usual string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return usual
}
